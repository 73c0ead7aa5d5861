import { get_structured_content } from "host:mcp-everything";

const weather = (await get_structured_content({ location: "Chicago" })).data;
const original = { weather, when: new Date(0), tags: new Set(["a"]), nested: { list: [1, 2, 3] } };
const copy = structuredClone(original);
copy.nested.list.push(4);
copy.tags.add("b");
console.log(original.nested.list.length, copy.nested.list.length, copy.when instanceof Date, original.tags.size);
return { same: copy.weather !== original.weather && copy.weather.humidity === weather.humidity, keys: Object.keys(weather).sort() };
