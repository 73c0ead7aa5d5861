import { read_text_file } from "host:mcp-filesystem";

const usd = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
const { text } = await read_text_file({ path: "/data/sales.csv" });
let total = 0;
let units = 0;
for (const line of text.trim().split("\n").slice(1)) {
  const price = Number(line.slice(line.lastIndexOf(",") + 1));
  const n = Number(line.split(",").at(-2));
  total += n * price;
  units += n;
}
const share = (4 / 6).toLocaleString(undefined, { style: "percent", minimumFractionDigits: 1 });
return [usd.format(total), units.toLocaleString(), (1234567.891).toLocaleString("en-US"), share].join(" | ");
