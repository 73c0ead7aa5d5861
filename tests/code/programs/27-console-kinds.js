class Point { constructor(x, y) { this.x = x; this.y = y; } }
const circular = { name: "loop" };
circular.self = circular;

console.group("Values");
console.log(new Point(1, 2), [1, "two", null, undefined], { a: { b: { c: { d: 1 } } } });
console.info(new Date(0), 10n, Symbol("s"), () => 1, /re/g);
console.log(circular);
console.groupEnd();
console.log("%s is %i years and %o", "Ada", 36.7, { ok: true });
console.count("calls"); console.count("calls");
console.assert(1 === 2, "math is broken");
console.log(new Uint8Array([1, 2, 3]), new Map([["k", { v: 1 }]]), new Error("boom").message);
console.error("done");
"printed"
