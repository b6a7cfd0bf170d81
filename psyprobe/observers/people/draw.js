"use strict";
// Draws one frame of a stimulus from its specification: `painter(canvas, shader)` gives a function of the uniforms.
// The canvas must cover its device pixels exactly: a resampled one averages the dither away without a word.
function painter(canvas, shader) {
  const gl = canvas.getContext("webgl2", { alpha: false, antialias: false, depth: false, premultipliedAlpha: false, preserveDrawingBuffer: true });
  if (!gl) throw new Error(TEXT.noWebGL);
  const exact = gl.getShaderPrecisionFormat(gl.FRAGMENT_SHADER, gl.HIGH_FLOAT).precision;
  if (exact < 23) throw new Error(fill(TEXT.coarse, { BITS: exact }));
  const VERTEX = "#version 300 es\nvoid main() { gl_Position = vec4(gl_VertexID == 1 ? 3 : -1, gl_VertexID == 2 ? 3 : -1, 0, 1); }";
  const program = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, shader]]) {
    const made = gl.createShader(kind);
    gl.shaderSource(made, text);
    gl.compileShader(made);
    if (!gl.getShaderParameter(made, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(made));
    gl.attachShader(program, made);
  }
  gl.linkProgram(program);
  gl.useProgram(program);
  // On by default, and another dither on top of ours.
  gl.disable(gl.DITHER);
  const place = (name) => gl.getUniformLocation(program, name);
  const FLOATS = ["mean", "contrast", "cycles", "sigma", "orientation", "phase", "peak", "black", "reflected", "power", "pixel_scale"];
  const textures = [null, null];
  function setTexture(unit, values, width) {
    if (textures[unit]) gl.deleteTexture(textures[unit]);
    textures[unit] = gl.createTexture();
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(gl.TEXTURE_2D, textures[unit]);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.R32F, width, values.length / width, 0, gl.RED, gl.FLOAT, new Float32Array(values));
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  }
  const setCurve = (values) => setTexture(0, values, values.length);
  setCurve([0, 1]);
  setTexture(1, [0], 1);
  gl.uniform1i(place("curve"), 0);
  gl.uniform1i(place("pixels"), 1);
  return {
    setCurve,
    // A letter or noise, a number for each pixel, the lowest row first.
    setPixels: (values, width) => setTexture(1, values, width),
    draw(stimulus, frame) {
      gl.viewport(0, 0, canvas.width, canvas.height);
      for (const name of FLOATS) gl.uniform1f(place(name), stimulus[name] ?? 0);
      const [x, y] = stimulus.centre || [(canvas.width - 1) / 2, (canvas.height - 1) / 2];
      gl.uniform2f(place("centre"), x, y);
      gl.uniform1ui(place("frame"), frame);
      gl.uniform1ui(place("seed"), stimulus.seed);
      gl.uniform1i(place("method"), { golden: 0, noisy_bit: 1, wide: 2 }[stimulus.dither]);
      gl.drawArrays(gl.TRIANGLES, 0, 3);
    },
    // Codes of the red channel, rows from below.
    read() {
      const all = new Uint8Array(4 * canvas.width * canvas.height);
      gl.readPixels(0, 0, canvas.width, canvas.height, gl.RGBA, gl.UNSIGNED_BYTE, all);
      return all.filter((_, i) => i % 4 === 0);
    },
  };
}
// Pixels as they are sent: whole numbers of 16 bits in base64.
function pixelsOf(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return Float32Array.from(new Int16Array(bytes.buffer), (value) => value / 32767);
}
