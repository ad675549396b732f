// What sampled counts stand for and how sure that is: src/profile/estimate.c a second time, where the formulas are
// explained. JavaScript has no erfc and no lgamma; those here are exact to the last digits of a double.
import type { Estimate, Interval } from '../types';

export const Z95 = 1.959963984540054;
const ZERO_BOUND = 3;              // nothing sampled: with 95 % confidence there is less than this many R bytes
export const FEW_SAMPLES = 10;     // below this many samples the Poisson interval is used instead of the normal one
const H_TOP_U = 1.593624260040040; // where h is largest: u = 2 (1 - e^-u)

const h = (u: number) => u < 1e-9 ? u : u * u / Math.expm1(u);

// --- variance ---

// What one sample's (objects, bytes) estimates say about its bytes. blockSize 0: sizes are mixed; rate <= 1: exact.
export function estimateBytes(objects: number, bytes: number, blockSize: number, rate: number): Estimate {
  if (!(rate > 1))
    return { value: bytes, variance: 0, weight: 0 };
  if (!(bytes > 0))
    return { value: bytes, variance: 0, weight: rate };
  if (blockSize) {
    const u = blockSize / rate, part = h(u) / u;
    return { value: bytes, variance: bytes * rate * part, weight: rate * part };
  }
  if (!(objects > 0))
    return { value: bytes, variance: bytes * rate, weight: rate };
  const u = Math.min(bytes / objects / rate, H_TOP_U);
  return { value: bytes, variance: Math.min(objects * rate * rate * h(u), bytes * rate), weight: rate };
}

// The same about its objects.
export function estimateObjects(objects: number, bytes: number, blockSize: number, rate: number): Estimate {
  if (!(rate > 1) || !(objects > 0))
    return { value: objects, variance: 0, weight: 0 };
  const factor = 1 / Math.expm1((blockSize || Math.max(bytes / objects, 8)) / rate);
  return { value: objects, variance: objects * factor, weight: factor };
}

// --- special functions ---

// zeta(k) - 1 by Euler and Maclaurin from n = 20 on.
function zetaMinus1(k: number): number {
  let sum = 0;
  for (let n = 19; n >= 2; n--)
    sum += n ** -k;
  const n = 20;
  let term = k / 12 * n ** (-k - 1), more = term;
  const factors = [-1 / 60, -1 / 42, -1 / 40, -5 / 198];    // ratios of B(2j)/(2j)!, times what the rising powers leave
  for (let j = 0; j < factors.length; j++) {
    term *= factors[j] * (k + 2 * j + 1) * (k + 2 * j + 2) / (n * n);
    more += term;
  }
  return sum + n ** (1 - k) / (k - 1) + n ** -k / 2 + more;
}

const EULER_REST = 0.42278433509846713;     // 1 - gamma
// Of lgamma(2 + z) = (1 - gamma) z + sum of (-1)^k (zeta(k) - 1) / k z^k, k from 2 on.
const NEAR_TWO = Array.from({ length: 30 }, (_, i) => (i % 2 ? -1 : 1) * zetaMinus1(i + 2) / (i + 2));
const STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400];

// log of the gamma function, for x > 0.
export function logGamma(x: number): number {
  if (x >= 12) {
    const square = 1 / (x * x);
    let sum = 0;
    for (let i = STIRLING.length; i-- > 0;)
      sum = sum * square + STIRLING[i];
    return (x - 0.5) * Math.log(x) - x + 0.9189385332046728 + sum / x;
  }
  let product = 1, y = x;
  for (; y > 2.5; y--)
    product *= y - 1;
  let below = 1;
  for (; y < 1.5; y++)
    below *= y;
  const z = y - 2;
  let sum = 0;
  for (let i = NEAR_TWO.length; i-- > 0;)
    sum = (sum + NEAR_TWO[i]) * z;
  return (EULER_REST + sum) * z + (product > 1 ? Math.log(product) : 0) - (below !== 1 ? Math.log(below) : 0);
}

// 1 - erf(x), for x >= 0: a series of positive terms near zero, a continued fraction beyond.
export function erfc(x: number): number {
  if (!(x < 28))
    return Number.isNaN(x) ? NaN : 0;
  // e^(-x^2), with the square's last digits, which count when it is large
  const head = Math.fround(x), bell = Math.exp(-head * head) * Math.exp(-(x - head) * (x + head));
  if (x < 1) {
    let term = x, sum = x;
    for (let n = 1; term > sum * 1e-17; n++)
      sum += term *= 2 * x * x / (2 * n + 1);
    return 1 - 2 / Math.sqrt(Math.PI) * bell * sum;
  }
  let b = x * x + 0.5, c = 1e300, d = 1 / b, f = d;
  for (let i = 1; i < 1000; i++) {
    const a = -i * (i - 0.5);
    b += 2;
    d = 1 / (a * d + b);
    c = b + a / c;
    const step = c * d;
    f *= step;
    if (Math.abs(step - 1) < 1e-16)
      break;
  }
  return x * bell / Math.sqrt(Math.PI) * f;
}

let density = 0;       // gammaP's second answer: its derivative

// Regularized lower incomplete gamma function P(a, x).
function gammaP(a: number, logGammaA: number, x: number): number {
  const front = Math.exp(a * Math.log(x) - x - logGammaA);
  density = front / x;
  if (x < a + 1) {
    let term = 1 / a, sum = term;
    for (let i = 1; i < 500 && term > sum * 1e-12; i++) {
      term *= x / (a + i);
      sum += term;
    }
    return front * sum;
  }
  let b = x + 1 - a, c = 1e300, d = 1 / b, f = d;
  for (let i = 1; i < 500; i++) {
    const an = -i * (i - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    const step = c * d;
    f *= step;
    if (Math.abs(step - 1) < 1e-12)
      break;
  }
  return 1 - front * f;
}

// x with P(a, x) = p; z: the normal quantile of p.
function gammaQuantile(a: number, p: number, z: number): number {
  const logGammaA = logGamma(a);
  let low = 0, high = a + 10 * Math.sqrt(a) + 20;
  const cube = 1 - 1 / (9 * a) + z / (3 * Math.sqrt(a));
  let x = cube > 0.2 ? a * cube * cube * cube : Math.exp((Math.log(p * a) + logGammaA) / a);
  for (let i = 0; i < 100; i++) {
    if (!(x > low && x < high))
      x = (low + high) / 2;
    if (x <= 0)
      return 0;
    const off = gammaP(a, logGammaA, x) - p;
    if (off < 0)
      low = x;
    else
      high = x;
    const step = density > 0 ? off / density : 0;
    if (Math.abs(step) <= 1e-9 * x || high - low <= 1e-12 * high)
      return density > 0 ? Math.max(0, x - step) : x;
    x -= step;
  }
  return x;
}

// --- intervals ---

// How many samples of equal weight would be as uncertain; Infinity when exact.
export function estimateSamples(e: Estimate): number {
  if (!(e.variance > 0))
    return e.value > 0 && !(e.weight > 0) ? Infinity : 0;
  return e.value * e.value / e.variance;
}

// 95 % interval of the true amount.
export function estimateInterval(e: Estimate): Interval {
  if (!(e.variance > 0))
    return { low: e.value, high: e.value + (e.value > 0 ? 0 : ZERO_BOUND * e.weight) };
  const samples = estimateSamples(e);
  if (samples >= FEW_SAMPLES) {
    const half = Z95 * Math.sqrt(e.variance);
    return { low: Math.max(0, e.value - half), high: e.value + half };
  }
  const unit = e.variance / e.value, above = e.value + e.weight, aboveVariance = e.variance + e.weight * e.weight;
  return {
    low: unit * gammaQuantile(samples, 0.025, -Z95),
    high: aboveVariance / above * gammaQuantile(above * above / aboveVariance, 0.975, Z95),
  };
}

// 95 % interval of gained - lost, which are independent.
export function estimateDifference(gained: Estimate, lost: Estimate): Interval {
  const g = estimateInterval(gained), l = estimateInterval(lost), change = gained.value - lost.value;
  const root = (a: number, b: number) => Math.sqrt(a * a + b * b);
  return {
    low: change - root(gained.value - g.low, l.high - lost.value),
    high: change + root(g.high - gained.value, lost.value - l.low),
  };
}

// Two-sided p-value of "nothing changed". 1 when both are zero; 0 when exact and different.
export function estimatePValue(gained: Estimate, lost: Estimate): number {
  const change = gained.value - lost.value;
  if (change === 0)
    return 1;
  if (!(gained.variance + lost.variance > 0) && !(gained.weight + lost.weight > 0))
    return 0;
  const i = estimateDifference(gained, lost), arm = change > 0 ? change - i.low : i.high - change;
  return arm > 0 ? erfc(Math.abs(change) / arm * Z95 / Math.SQRT2) : 0;
}

// Benjamini-Hochberg: which stay significant when the false-discovery rate is held at q.
export function significant(pValues: Float64Array, q = 0.05): Uint8Array {
  const n = pValues.length, sorted = pValues.slice().sort();
  let cut = -1;
  for (let i = 0; i < n; i++)
    if (sorted[i] <= q * (i + 1) / n)
      cut = sorted[i];
  const flags = new Uint8Array(n);
  for (let i = 0; i < n; i++)
    flags[i] = pValues[i] <= cut ? 1 : 0;
  return flags;
}
