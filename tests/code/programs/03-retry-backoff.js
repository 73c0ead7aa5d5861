import { echo } from "host:mcp-everything";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function withRetry(fn, { retries = 3, delay = 20 } = {}) {
  let lastError;
  for (let attempt = 1; attempt <= retries; attempt++) {
    try {
      return await fn(attempt);
    } catch (err) {
      lastError = err;
      console.warn(`attempt ${attempt} failed: ${err.message}`);
      await sleep(delay * 2 ** (attempt - 1));
    }
  }
  throw lastError;
}

let calls = 0;
const answer = await withRetry(async (attempt) => {
  calls++;
  if (attempt < 3) throw new Error("flaky");
  const r = await echo({ message: `try ${attempt}` });
  if (!r.ok) throw new Error(r.error);
  return r.text;
});

({ answer, calls });
