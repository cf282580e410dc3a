// Offsets of the service count code points; JavaScript counts UTF-16 units. An emoji is one of the first and two of the
// second, so that each offset is moved by the number of such characters before it.
export class Offsets {
  constructor(text) {
    this.text = text;
    this.astral = [];
    for (let unit = 0, point = 0; unit < text.length; unit += 1, point += 1) {
      const code = text.charCodeAt(unit);
      if (code >= 0xd800 && code < 0xdc00 && unit + 1 < text.length) {
        const next = text.charCodeAt(unit + 1);
        if (next >= 0xdc00 && next < 0xe000) {
          this.astral.push(point);
          unit += 1;
        }
      }
    }
    this.length = text.length - this.astral.length;
  }

  // Where a code point begins, in UTF-16 units.
  toUnits(point) {
    return point + this.#before(point);
  }

  // The number of the code point that begins at, or holds, a UTF-16 unit.
  toPoints(unit) {
    let low = 0, high = this.astral.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.astral[middle] + middle < unit) low = middle + 1;
      else high = middle;
    }
    return unit - low;
  }

  slice(start, end) {
    return this.text.slice(this.toUnits(start), this.toUnits(end));
  }

  #before(point) {
    let low = 0, high = this.astral.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.astral[middle] < point) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
