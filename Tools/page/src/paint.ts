// Colours and textures on canvases, read once per theme.

const PATTERN_PX = 6;
const MINE_COLOURS = 3;
const LIBRARY_COLOURS = 5;

export class Paint {
  readonly #style = getComputedStyle(document.documentElement);
  readonly #colours = new Map<string, string>();
  readonly #patterns = new Map<string, CanvasPattern | string>();
  readonly font = getComputedStyle(document.body).fontFamily;
  readonly theme = document.documentElement.dataset.theme;

  colour(name: string): string {
    let found = this.#colours.get(name);
    if (found === undefined) {
      found = this.#style.getPropertyValue(`--${name}`).trim();
      this.#colours.set(name, found);
    }
    return found;
  }

  /** Of a state, by the end of its class: the rare ones have a texture. */
  state(css: string): CanvasPattern | string {
    let found = this.#patterns.get(css);
    if (found === undefined) {
      found = this.#pattern(css) ?? this.colour(css);
      this.#patterns.set(css, found);
    }
    return found;
  }

  #pattern(css: string): CanvasPattern | null {
    const second = this.colour(`${css}-2`);
    if (!second) {
      return null;
    }
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = PATTERN_PX;
    const pen = canvas.getContext('2d')!;
    pen.fillStyle = this.colour(css);
    pen.fillRect(0, 0, PATTERN_PX, PATTERN_PX);
    pen.strokeStyle = pen.fillStyle = second;
    pen.lineWidth = 1.3;
    const line = (...[x1, y1, x2, y2]: [number, number, number, number]) => {
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.lineTo(x2, y2);
      pen.stroke();
    };
    if (css === 'gil') {
      line(-1, 7, 7, -1);
    } else if (css === 'slp') {
      line(-1, -1, 7, 7);
      line(2, -2, 8, 4);
    } else if (css === 'cpu') {
      pen.fillRect(0, 0, 2, 6);
      pen.fillRect(4, 0, 1, 6);
    } else if (css === 'loop') {
      pen.fillRect(0, 4, 6, 1);
    } else {
      pen.fillRect(1, 1, 2, 2);
      pen.fillRect(4, 4, 2, 2);
    }
    return pen.createPattern(canvas, 'repeat');
  }
}

/** Make a canvas as large as its place, in the pixels of the screen. */
export function fit(canvas: HTMLCanvasElement, width: number,
  height: number): CanvasRenderingContext2D {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext('2d')!;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

/** The colour of each package's or module's number; see page.css. */
export function libraryColour(rank: number): string {
  return rank < LIBRARY_COLOURS ? `p-${rank + 1}` : 'p-other';
}

export function mineColour(rank: number): string {
  return `mine-${rank % MINE_COLOURS + 1}`;
}

