// The suite knows of no tokens: this sends the hub's with each of its requests, be they undici's (fetch too) or
// node:http's. node --import ./token.mjs
import { subscribe } from 'node:diagnostics_channel';
import http from 'node:http';
import { syncBuiltinESMExports } from 'node:module';

const bearer = `Bearer ${process.env.HOLT_TOKEN}`;
const { request } = http;

subscribe('undici:request:create', (made) => made.request.addHeader('Authorization', bearer));
http.request = (...args) => {
	const made = request(...args);
	made.setHeader('Authorization', bearer);
	return made;
};
syncBuiltinESMExports();
