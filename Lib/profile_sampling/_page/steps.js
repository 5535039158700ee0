// The steps that are taken on the page, and the way back.
//
// This file owns where they are kept: in the browser's history, with the query
// in the address.  It must not know what a query says.
//
// A page in a frame, as in a notebook, keeps them itself: the history is that
// of the page around it, which is not ours to fill.
// @ts-check

export class Steps {
  /** @param {() => void} onback */
  constructor(onback) {
    this.isFrame = globalThis.top !== globalThis.self;
    this.onback = onback;
    // In a frame: the last one is where the page is.
    this.taken = [location.hash];
    if (!this.isFrame) {
      addEventListener('popstate', onback);
    }
  }

  get fragment() {
    return this.isFrame ? /** @type {string} */ (this.taken.at(-1))
      : location.hash;
  }

  /** How many steps there are to undo before one would leave the page. */
  get count() {
    return this.isFrame ? this.taken.length - 1
      : Number(history.state?.steps ?? 0);
  }

  /** @param {string} fragment */
  take(fragment) {
    if (this.isFrame) {
      this.taken.push(fragment);
    } else {
      history.pushState({steps: this.count + 1}, '', `#${fragment}`);
    }
  }

  /** Change the last step; @param {string} fragment */
  replace(fragment) {
    if (this.isFrame) {
      this.taken[this.taken.length - 1] = fragment;
    } else {
      history.replaceState(history.state, '', `#${fragment}`);
    }
  }

  back() {
    if (!this.count) {
      return;
    }
    if (this.isFrame) {
      this.taken.pop();
      this.onback();
    } else {
      history.back();
    }
  }
}
