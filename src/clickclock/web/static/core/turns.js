// A page asks again at each change, before it has its answer. Answers may come in another order than the questions.
export class Turns {
  #asked = 0; #taken = 0;
  /** The page begins anew: no answer to what was asked before counts. */
  begin() { this.#taken = ++this.#asked; }
  /** A question's number. */
  next() { return ++this.#asked; }
  /** Whether this question's answer counts: none to a later question was taken. */
  take(turn) {
    if (turn < this.#taken) return false;
    this.#taken = turn;
    return true;
  }
}
