#version 300 es
// A Gabor from its specification, and letters and noise as a texture of pixels, in cd/m2, as drive of an assumed display, dithered to 8 bits.
// Its numpy twin is tests/people/shader_twin.py; the integers are the same.
precision highp float;
precision highp int;
uniform vec2 centre;          // device px from the lower left
uniform float mean;           // cd/m2
uniform float contrast;       // Michelson, of the peak; the envelope in time is in it
uniform float cycles;         // per device px
uniform float sigma;          // device px
uniform float orientation;    // rad, of the modulation's direction, x right and y up
uniform float phase;          // rad
uniform float peak, black, reflected;  // cd/m2
uniform sampler2D pixels;     // of a letter or noise, -1 to 1, a texel for each pixel from the lower left
uniform float pixel_scale;    // contrast of 1; the envelope in time is in it; 0 without them
uniform sampler2D curve;      // drive over relative light, where power is 0
uniform float power;          // exponent; -1: sRGB
uniform uint frame, seed;
uniform int method;           // 0 golden, 1 noisy bit, 2 wide
out vec4 colour;

uint pcg(uint a) {
  uint s = a * 747796405u + 2891336453u;
  uint w = ((s >> ((s >> 28u) + 4u)) ^ s) * 277803737u;
  return (w >> 22u) ^ w;
}
uint hash(uint x, uint y, uint z) { return pcg(x + pcg(y + pcg(z))); }
float fraction(uint place, uint stream) {
  uint h = method == 1 ? hash(place, frame, seed) : hash(place, stream, seed) + frame * 2654435769u;
  return float(h >> 8u) / 16777216.0;
}
float drive_of(float light) {
  if (power < 0.0) return light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1.0 / 2.4) - 0.055;
  if (power > 0.0) return pow(light, 1.0 / power);
  float n = float(textureSize(curve, 0).x - 1), at = light * n, low = min(floor(at), n - 1.0);
  float a = texelFetch(curve, ivec2(int(low), 0), 0).r, b = texelFetch(curve, ivec2(int(low) + 1, 0), 0).r;
  return a + (at - low) * (b - a);
}
void main() {
  uvec2 pixel = uvec2(gl_FragCoord.xy);
  vec2 from = vec2(pixel) - centre;
  // Cycles are cut to their fraction before the cosine: large arguments lose digits.
  float turn = fract(cycles * (from.x * cos(orientation) + from.y * sin(orientation)));
  float wave = exp(-dot(from, from) / (2.0 * sigma * sigma)) * cos(6.283185307179586 * turn + phase);
  float grain = pixel_scale == 0.0 ? 0.0 : pixel_scale * texelFetch(pixels, ivec2(pixel), 0).r;
  float light = mean * (1.0 + contrast * wave + grain);
  float value = 255.0 * drive_of(clamp((light - black - reflected) / (peak - black), 0.0, 1.0));
  uint place = pixel.x + 4096u * pixel.y;
  if (method == 2) value += 8.0 * (fraction(place, 1u) - 0.5);
  float code = clamp(floor(value + fraction(place, 0u)), 0.0, 255.0);
  colour = vec4(vec3(code / 255.0), 1.0);
}
