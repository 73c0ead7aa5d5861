import { write_file, read_text_file } from "host:mcp-filesystem";

const text = "Crème brûlée 🎉";
const bytes = new TextEncoder().encode(text);
let binary = "";
bytes.forEach((b) => (binary += String.fromCharCode(b)));
const encoded = btoa(binary);
await write_file({ path: "/data/encoded.txt", content: encoded });

const read = (await read_text_file({ path: "/data/encoded.txt" })).text;
const decoded = new TextDecoder().decode(Uint8Array.from(atob(read), (c) => c.charCodeAt(0)));
return { encoded, same: decoded === text, length: bytes.length };
