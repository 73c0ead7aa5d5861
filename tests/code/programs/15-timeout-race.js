import { trigger_long_running_operation, echo } from "host:mcp-everything";

function withTimeout(promise, ms, label) {
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${label} timed out after ${ms}ms`)), ms);
  });
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}

const fast = await withTimeout(echo({ message: "quick" }), 20000, "echo");
let slow;
try {
  slow = await withTimeout(trigger_long_running_operation({ duration: 5, steps: 1 }), 300, "long");
} catch (e) {
  slow = e.message;
}
export default { fast: fast.text, slow };
