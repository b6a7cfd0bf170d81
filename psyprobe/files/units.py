"""Units as CF conventions write them in a result's attributes, and as vision scientists read them
on an axis.
"""

from __future__ import annotations

from psyprobe.files.json_types import JsonMapping

#: Symbol on an axis to what UDUNITS reads; each can be told from the other alone.
_UDUNITS = {
    "1": "1",
    "cpd": "cycles/degree",
    "deg": "degree",
    "deg²": "degree2",
    "cd/m²": "cd m-2",
    "1/deg": "degree-1",
    "1/cpd": "degree/cycle",
    "1/deg²": "degree-2",
    "1/(cd/m²)": "cd-1 m2",
    "Hz": "Hz",
    "1/Hz": "Hz-1",
    **{name: name for name in ("s", "ms", "m", "cm", "mm", "cd", "K", "%")},
}
_SYMBOLS = {units: symbol for symbol, units in _UDUNITS.items()}


def unit_attributes(symbol: str) -> dict[str, str]:
    """Write a unit as attributes of a variable: `units` for parsers, `unit_symbol` for readers.

    Parameters
    ----------
    symbol : str
        As on an axis: "cpd", "deg", "cd/m²", "1" for a ratio. One that is no unit of physics, as
        "octaves" or "EUR", counts as a pure number whose `unit_symbol` is told.

    Returns
    -------
    dict of str to str
        `unit_symbol` is left out where `units` tells it.

    Examples
    --------
    >>> unit_attributes("cpd"), unit_attributes("octaves")
    ({'units': 'cycles/degree'}, {'units': '1', 'unit_symbol': 'octaves'})
    """
    if symbol in _UDUNITS or not symbol:
        return {"units": _UDUNITS.get(symbol, "1")}
    return {"units": "1", "unit_symbol": symbol}


def unit_symbol(attributes: JsonMapping) -> str:
    """Read the unit of a variable from its attributes, as on an axis; "1" where it has none.

    Examples
    --------
    >>> unit_symbol({"units": "cd m-2"}), unit_symbol({})
    ('cd/m²', '1')
    """
    units = str(attributes.get("units", "1"))
    return str(attributes.get("unit_symbol", _SYMBOLS.get(units, units)))


def inverse_symbol(symbol: str) -> str:
    """Write the symbol of the unit of one over a quantity.

    Examples
    --------
    >>> inverse_symbol("deg"), inverse_symbol("1")
    ('1/deg', '1')
    """
    if symbol in ("", "1"):
        return "1"
    return f"1/({symbol})" if "/" in symbol else f"1/{symbol}"
