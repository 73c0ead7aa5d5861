class Progress extends EventTarget {
  #done = 0;
  constructor(total) { super(); this.total = total; }
  step() {
    this.#done++;
    this.dispatchEvent(new CustomEvent("progress", { detail: { done: this.#done, total: this.total } }));
    if (this.#done === this.total) this.dispatchEvent(new Event("complete"));
  }
}

const { echo } = require("host:mcp-everything");
const progress = new Progress(3);
const lines = [];
progress.addEventListener("progress", (e) => lines.push(`${e.detail.done}/${e.detail.total}`));
const finished = new Promise((resolve) => progress.addEventListener("complete", resolve, { once: true }));
for (const message of ["a", "b", "c"]) {
  const r = await echo({ message });
  if (r.ok) progress.step();
}
const event = await finished;
return { lines, type: event.type };
