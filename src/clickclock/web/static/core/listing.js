// A page that is one answer to one question: what its address asks for, and what came back.
import { filters } from "./address.js";
import { ask } from "./api.js";

/** `names` are the filters of the address; of two answers on their way, the later question counts. */
export function listing(path, names, limit) {
  let redraw = () => {}, asked = 0;
  const list = {
    chosen: {}, told: null, wrong: null,
    enter(draw) {
      redraw = draw;
      list.told = null;
      list.load();
    },
    async load() {
      const mine = ++asked;
      list.chosen = filters(names);
      const { ignored, ...query } = list.chosen;
      try {
        const found = await ask(path, { ...query, limit });
        if (mine === asked) [list.told, list.wrong] = [found, null];
      } catch (error) { if (mine === asked) list.wrong = error; }
      redraw();
    },
  };
  return list;
}
