const fs = require("host:mcp-filesystem");

function parseCSV(text) {
  const rows = [];
  for (const line of text.trim().split("\n")) {
    const cells = [];
    for (const m of line.matchAll(/("([^"]*)"|[^,]*)(,|$)/g)) {
      cells.push(m[2] ?? m[1]);
      if (m[3] === "") break;
    }
    rows.push(cells);
  }
  const [head, ...body] = rows;
  return body.map(r => Object.fromEntries(head.map((h, i) => [h, r[i]])));
}

const csv = (await fs.read_text_file({ path: "/data/sales.csv" })).data.content;
const rows = parseCSV(csv).map(r => ({ ...r, revenue: Number(r.units) * Number(r.price) }));
const byRegion = Object.groupBy(rows, r => r.region);
const table = Object.entries(byRegion).map(([region, list]) => ({
  region,
  orders: list.length,
  revenue: list.reduce((s, r) => s + r.revenue, 0).toFixed(2),
}));
console.table(table);
return table;
