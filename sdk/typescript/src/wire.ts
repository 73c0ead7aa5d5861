/** WebSockets (RFC 6455) as a client speaks them, without I/O: bytes in, bytes out. */
import { createHash, randomBytes } from 'node:crypto';

export const MESSAGE_MAX = 8 << 20;
export const TEXT = 1,
	BINARY = 2,
	CLOSE = 8,
	PING = 9,
	PONG = 10;

/** Header fields of the request, and what the answer's Sec-WebSocket-Accept must be. */
export function upgradeFields(protocol: string): [Record<string, string>, string] {
	const key = randomBytes(16).toString('base64');
	const accept = createHash('sha1')
		.update(key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11')
		.digest('base64');
	return [
		{
			Connection: 'Upgrade',
			Upgrade: 'websocket',
			'Sec-WebSocket-Version': '13',
			'Sec-WebSocket-Key': key,
			'Sec-WebSocket-Protocol': protocol,
		},
		accept,
	];
}

export function encodeFrame(opcode: number, data: Uint8Array): Buffer {
	const n = data.length;
	const lengthBytes = n < 126 ? 0 : n < 1 << 16 ? 2 : 8;
	const frame = Buffer.alloc(6 + lengthBytes + n);
	frame[0] = 0x80 | opcode;
	frame[1] = 0x80 | (lengthBytes === 0 ? n : lengthBytes === 2 ? 126 : 127);
	if (lengthBytes === 2) frame.writeUInt16BE(n, 2);
	else if (lengthBytes === 8) frame.writeBigUInt64BE(BigInt(n), 2);
	const mask = randomBytes(4);
	mask.copy(frame, 2 + lengthBytes);
	for (let i = 0; i < n; i++) frame[6 + lengthBytes + i] = data[i]! ^ mask[i & 3]!;
	return frame;
}

/** What comes over a WebSocket: whole messages and control frames. */
export class Messages {
	#got: Buffer = Buffer.alloc(0);
	#opcode = 0;
	#parts: Buffer[] = [];
	#size = 0;

	feed(data: Uint8Array): { opcode: number; payload: Buffer }[] {
		const found: { opcode: number; payload: Buffer }[] = [];
		this.#got = this.#got.length ? Buffer.concat([this.#got, data]) : Buffer.from(data);
		for (let frame = this.#frame(); frame; frame = this.#frame()) {
			const { final, opcode, payload } = frame;
			if (opcode >= CLOSE) {
				found.push({ opcode, payload });
				continue;
			}
			if ((opcode === 0) !== (this.#opcode !== 0))
				throw new Error("a frame of a WebSocket where it can't be");
			this.#opcode ||= opcode;
			this.#parts.push(payload);
			this.#size += payload.length;
			if (this.#size > MESSAGE_MAX) throw new Error('a message of a WebSocket is too long');
			if (final) {
				found.push({ opcode: this.#opcode, payload: Buffer.concat(this.#parts) });
				this.#opcode = this.#size = 0;
				this.#parts = [];
			}
		}
		return found;
	}

	#frame(): { final: boolean; opcode: number; payload: Buffer } | undefined {
		const got = this.#got;
		if (got.length < 2) return undefined;
		let n = got[1]! & 0x7f;
		const at = n < 126 ? 2 : n === 126 ? 4 : 10;
		if (got[0]! & 0x70 || got[1]! & 0x80)
			throw new Error('a frame of a WebSocket that was not agreed on');
		if (got.length < at) return undefined;
		if (n === 126) n = got.readUInt16BE(2);
		else if (n === 127) n = Number(got.readBigUInt64BE(2));
		if (n > MESSAGE_MAX) throw new Error('a message of a WebSocket is too long');
		if (got.length < at + n) return undefined;
		this.#got = got.subarray(at + n);
		return {
			final: !!(got[0]! & 0x80),
			opcode: got[0]! & 0x0f,
			payload: Buffer.from(got.subarray(at, at + n)),
		};
	}
}
