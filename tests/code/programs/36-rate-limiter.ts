import { echo } from "host:mcp-everything";

class RateLimiter {
  private queue: Array<() => void> = [];
  private active = 0;
  constructor(private readonly max: number, private readonly interval: number) {}

  async schedule<T>(fn: () => Promise<T>): Promise<T> {
    if (this.active >= this.max) await new Promise<void>((resolve) => this.queue.push(resolve));
    this.active++;
    try {
      return await fn();
    } finally {
      setTimeout(() => {
        this.active--;
        this.queue.shift()?.();
      }, this.interval);
    }
  }
}

const limiter = new RateLimiter(2, 15);
const results: string[] = await Promise.all(
  ["a", "b", "c", "d", "e"].map((message) => limiter.schedule(async () => (await echo({ message })).text.replace("Echo: ", ""))),
);
return results.join("");
