"""The model zoo, "zoo:NAME": models of Cai et al. (2025), and newer encoders, by their names."""
