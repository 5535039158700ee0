// Bytes of a profile: from the page or a file to a message, and its fields.
//
// This file owns base64, gzip and the wire format of protocol buffers.  It
// must not know what a field means.
//
// Numbers are of 64 bits there, and of 53 here: what is beyond them is the
// nearest number that can be.
// @ts-check

// What a message may come to: no profile of ours is near this.
const MAX_BYTES = 1 << 29;
const TWO_32 = 4294967296;

/** @param {string} text */
export function fromBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) {
    bytes[i] = binary.charCodeAt(i);
  }
  return bytes;
}

/**
 * The message in a file, which may be compressed.
 * @param {Uint8Array} bytes
 */
export async function decompressed(bytes) {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
    ? inflated(bytes, 'gzip', MAX_BYTES) : bytes;
}

/**
 * @param {Uint8Array} bytes
 * @param {CompressionFormat} format
 * @param {number} most how many bytes it may come to
 */
export async function inflated(bytes, format, most) {
  const stream = new Blob([/** @type {BlobPart} */ (bytes)]).stream();
  const reader = stream.pipeThrough(
    new DecompressionStream(format)).getReader();
  const chunks = [];
  let length = 0;
  for (;;) {
    const {done, value} = await reader.read();
    if (done) {
      break;
    }
    chunks.push(value);
    length += value.length;
    if (length > most) {
      await reader.cancel();
      throw new Error('the profile is too large for this page');
    }
  }
  const message = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    message.set(chunk, at);
    at += chunk.length;
  }
  return message;
}

/** Reads the fields of a message, one after the other. */
export class Wire {
  /**
   * @param {Uint8Array} bytes
   * @param {number} at
   * @param {number} end
   */
  constructor(bytes, at, end) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
    // Of the field that next() came to: its number, and where it begins and
    // ends if it has bytes, else its value.
    this.field = 0;
    this.isBytes = false;
    this.start = 0;
    this.stop = 0;
    this.value = 0;
  }

  /** Whether there is one more field. */
  next() {
    if (this.at >= this.end) {
      return false;
    }
    const key = this.varint();
    this.field = Math.floor(key / 8);
    const type = key % 8;
    this.isBytes = type === 2;
    if (type === 0) {
      this.value = this.varint();
    } else if (type === 2) {
      const size = this.varint();
      this.start = this.at;
      this.skip(size);
      this.stop = this.at;
    } else if (type === 1 || type === 5) {
      this.skip(type === 1 ? 8 : 4);
      this.field = 0;
    } else {
      throw new Error('the profile is damaged: a field has no known type');
    }
    return true;
  }

  /** @param {number} size */
  skip(size) {
    if (!(size >= 0 && size <= this.end - this.at)) {
      throw new Error('the profile is cut off');
    }
    this.at += size;
  }

  /** A signed number of 64 bits. */
  varint() {
    const first = this.bytes[this.at];
    if (first < 128 && this.at < this.end) {
      // Nearly all are as short as that.
      this.at++;
      return first;
    }
    const second = this.bytes[this.at + 1];
    if (second < 128 && this.at + 1 < this.end) {
      this.at += 2;
      return (first & 127) + 128 * second;
    }
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.at >= this.end) {
        throw new Error('the profile is cut off');
      }
      const byte = this.bytes[this.at++];
      const bits = byte & 127;
      if (shift < 28) {
        low |= bits << shift;
      } else if (shift === 28) {
        low |= bits << 28;
        high = bits >> 4;
      } else {
        high |= bits << (shift - 32);
      }
      if (byte < 128) {
        return high * TWO_32 + (low >>> 0);
      }
    }
    throw new Error('the profile is damaged: a number has more than 64 bits');
  }

  /** The message in this field. */
  inner() {
    return new Wire(this.bytes, 0, 0).enter(this);
  }

  /**
   * Go to the message in a field of another one.
   * @param {Wire} wire
   */
  enter(wire) {
    if (!wire.isBytes) {
      throw new Error('the profile is damaged: a field has the wrong type');
    }
    this.at = wire.start;
    this.end = wire.stop;
    return this;
  }

  /**
   * Add the numbers of a repeated field, packed or not.
   * @param {number[]} numbers
   */
  numbers(numbers) {
    if (!this.isBytes) {
      numbers.push(this.value);
      return;
    }
    const {at, end} = this;
    this.at = this.start;
    this.end = this.stop;
    while (this.at < this.end) {
      numbers.push(this.varint());
    }
    this.at = at;
    this.end = end;
  }

  /**
   * The numbers of the fields *wanted* of the message in this field.
   * @param {number[]} wanted
   */
  tuple(wanted) {
    const message = this.inner();
    const found = wanted.map(() => 0);
    while (message.next()) {
      const place = wanted.indexOf(message.field);
      if (place >= 0 && !message.isBytes) {
        found[place] = message.value;
      }
    }
    return found;
  }
}
