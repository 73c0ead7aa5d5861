const { read_text_file } = require("host:mcp-filesystem");
const users = JSON.parse((await read_text_file({ path: "/data/users.json" })).text);

const fmt = (iso) => new Date(iso).toLocaleDateString("en-US", { year: "numeric", month: "long", day: "numeric", timeZone: "UTC" });
const weekday = new Intl.DateTimeFormat("en-US", { weekday: "short", timeZone: "UTC" });
for (const u of users) {
  console.log(`${u.name.padEnd(14)} ${fmt(u.created)} (${weekday.format(new Date(u.created))})`);
}
const days = (Date.parse(users[1].created) - Date.parse(users[0].created)) / 864e5;
`${days.toLocaleString("en-US", { maximumFractionDigits: 1 })} days`;
