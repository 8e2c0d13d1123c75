/** What was recorded travels in base64; a notebook's engine has no atob. */
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The bytes of a text in base64, each from 0 to 255. */
export function bytesOf(base64) {
  const bytes = [];
  let [bits, n_bits] = [0, 0];
  for (const digit of base64.replace(/=/g, "")) {
    bits = (bits << 6) | DIGITS.indexOf(digit);
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes.push(bits >> n_bits);
    bits &= (1 << n_bits) - 1;
  }
  return bytes;
}
