#pragma once
/*
 * A kept connection to a hub, for load: one request under way at a time, and as little work for it
 * as can be, since the load stands on the same CPUs as the hub. Whatever goes wrong ends the
 * program. Where the hub is and its token are in HOLT_BENCH_PORT and HOLT_BENCH_TOKEN.
 *
 */
#include <stddef.h>
#include <stdint.h>

enum { WIRE_MAX = 1 << 20 };

struct wire {
	int fd;
	size_t at, have; /* what has come and is not read: in[at] to in[have] */
	char in[WIRE_MAX + 1];
};

struct wire *wire_new(void); /* connected; the caller's, by wire_free() */
void wire_free(struct wire *w);

/* body: JSON, or NULL. */
void wire_send(struct wire *w, const char *method, const char *path, const char *body);
/* The whole of a file as the body, from its beginning. */
void wire_send_file(struct wire *w, const char *method, const char *path, const char *type, int fd);

/* The answer, which must be a success, when all of it has come: borrowed until the next call. */
const char *wire_reply(struct wire *w);
/* The same of any length: how many bytes its body had. */
uint64_t wire_drain(struct wire *w);

/* What both say with one request and its answer. */
const char *wire_ask(struct wire *w, const char *method, const char *path, const char *body);

/* ---- WebSocket, RFC 6455 ---- */

enum { WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8 };

struct ws_frame {
	int opcode;
	const char *p; /* borrowed until the next call */
	size_t n;
};

void ws_open(struct wire *w, const char *path, const char *protocol);
void ws_say(struct wire *w, int opcode, const char *p, size_t n); /* at most 64 KiB - 1 */
struct ws_frame ws_hear(struct wire *w);
