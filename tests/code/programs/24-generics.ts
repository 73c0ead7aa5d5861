import { echo, get_sum } from "host:mcp-everything";

type Outcome<T, E = Error> = { ok: true; value: T } | { ok: false; error: E };

abstract class Task<T> {
  protected constructor(public readonly name: string) {}
  abstract run(): Promise<T>;
  async attempt(): Promise<Outcome<T>> {
    try {
      return { ok: true, value: await this.run() };
    } catch (error: unknown) {
      return { ok: false, error: error as Error };
    }
  }
}

class EchoTask extends Task<string> {
  constructor(private message: string) { super("echo"); }
  override async run(): Promise<string> {
    return (await echo({ message: this.message })).text;
  }
}

class FailingTask extends Task<never> {
  constructor() { super("fails"); }
  async run(): Promise<never> { throw new RangeError("out of range"); }
}

const tasks: Task<unknown>[] = [new EchoTask("typed"), new FailingTask()];
const outcomes = await Promise.all(tasks.map(async (t) => [t.name, await t.attempt()] as const));
const identity = <T,>(x: T): T => x;
return identity(outcomes.map(([name, o]) => `${name}: ${o.ok ? o.value : o.error.message}`));
