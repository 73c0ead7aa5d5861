import { echo } from "host:mcp-everything";

let polls = 0;
const status = await new Promise((resolve, reject) => {
  const id = setInterval(async () => {
    polls++;
    const r = await echo({ message: polls >= 3 ? "ready" : "pending" });
    if (r.text.endsWith("ready")) {
      clearInterval(id);
      resolve(r.text);
    } else if (polls > 10) {
      clearInterval(id);
      reject(new Error("gave up"));
    }
  }, 10);
});
return { status, enough: polls >= 3 };
