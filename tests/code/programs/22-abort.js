const controller = new AbortController();
const { signal } = controller;

function delay(ms, { signal } = {}) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const t = setTimeout(resolve, ms, "done");
    signal?.addEventListener("abort", () => { clearTimeout(t); reject(signal.reason); }, { once: true });
  });
}

setTimeout(() => controller.abort(new Error("user cancelled")), 10);
const outcomes = await Promise.allSettled([
  delay(1, { signal }),
  delay(10000, { signal }),
  delay(10000, { signal: AbortSignal.timeout(20) }),
]);
return outcomes.map((o) => (o.status === "fulfilled" ? o.value : `${o.reason.name}: ${o.reason.message}`));
