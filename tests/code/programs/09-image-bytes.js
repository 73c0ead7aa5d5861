import { get_tiny_image } from "host:mcp-everything";

const res = await get_tiny_image({});
const image = res.content.find((c) => c instanceof Uint8Array);
const signature = Array.from(image.slice(0, 8), (b) => b.toString(16).padStart(2, "0")).join(" ");
const view = new DataView(image.buffer, image.byteOffset, image.byteLength);
const width = view.getUint32(16), height = view.getUint32(20);
const base64 = btoa(String.fromCharCode(...image.subarray(0, 12)));
console.log("PNG?", signature.startsWith("89 50 4e 47"), `${width}x${height}`);
return { type: image.mimeType, signature, width, height, base64 };
