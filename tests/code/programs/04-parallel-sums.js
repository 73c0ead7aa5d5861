import { get_sum } from "host:mcp-everything";

const pairs = [[1, 2], [3, 4], [5, 6], [7, 8]];
const results = await Promise.all(
  pairs.map(async ([a, b]) => {
    const r = await get_sum({ a, b });
    return Number(r.text.match(/is (\d+)/)[1]);
  })
);
export default { results, total: results.reduce((a, b) => a + b, 0) };
