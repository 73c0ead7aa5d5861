/*
 * What a server says to a client of a WebSocket: behind a right upgrade, or in place of one where
 * bit 1 of the first byte is set. With bit 0 the client holds at each message and goes on from the
 * loop. Its last word comes once, and nothing is left.
 *
 */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base64.h"
#include "fuzz.h"
#include "http/message/sha1.h"
#include "http/client/ws.h"

enum { HOLDS = 1, RAW = 2, MESSAGE_MAX = 1024, SAID_MAX = 32 << 10 };

static struct {
	uv_loop_t loop;
	int listener;
	char folder[32];
	struct sockaddr_un at;
} host = { .listener = -1, .folder = "/tmp/fuzz-ws.XXXXXX", .at = { .sun_family = AF_UNIX } };

struct client {
	struct ws_client *ws; /* NULL behind its last word */
	uv_idle_t again;
	bool holds, opened;
};

static void remove_folder(void)
{
	unlink(host.at.sun_path);
	rmdir(host.folder);
}

static void listen_once(void)
{
	if (host.listener >= 0)
		return;
	MUST(mkdtemp(host.folder));
	snprintf(host.at.sun_path, sizeof(host.at.sun_path), "%s/s", host.folder);
	host.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(bind(host.listener, (struct sockaddr *)&host.at, sizeof(host.at)) == 0);
	MUST(listen(host.listener, 1) == 0 && uv_loop_init(&host.loop) == 0);
	atexit(remove_folder);
}

/* ---- the client ------------------------------------------------------------------------------ */

static void on_open(void *owner)
{
	struct client *c = owner;

	MUST(c->ws && !c->opened);
	c->opened = true;
}

static void on_again(uv_idle_t *idle)
{
	struct client *c = idle->data;

	uv_idle_stop(idle);
	if (c->ws)
		ws_client_hold(c->ws, false);
}

static void on_message(void *owner, bool is_text, struct str message)
{
	struct client *c = owner;

	MUST(c->ws && c->opened && message.n <= MESSAGE_MAX);
	ws_client_send(c->ws, is_text, message);
	if (!c->holds)
		return;
	ws_client_hold(c->ws, true);
	uv_idle_start(&c->again, on_again);
}

static void end(struct client *c)
{
	MUST(c->ws);
	c->ws = NULL;
	uv_idle_stop(&c->again);
	uv_close((uv_handle_t *)&c->again, NULL);
}

static void on_refused(void *owner, int status, struct str body)
{
	struct client *c = owner;

	MUST(!c->opened);
	end(c);
}

static void on_closed(void *owner, unsigned code, const struct err *why)
{
	MUST(why->code != ERR_NONE);
	end(owner);
}

static const struct ws_client_events events = { .on_open = on_open,
						.on_message = on_message,
						.on_refused = on_refused,
						.on_closed = on_closed };

/* ---- the server ------------------------------------------------------------------------------ */

/* The right answer to what the client has asked for. */
static void say_upgrade(int fd)
{
	static const char field[] = "Sec-WebSocket-Key: ";
	char request[4096], text[96];
	unsigned char hash[SHA1_BYTES];
	autobuf struct buf accept = BUF_INIT(64);
	ssize_t n = recv(fd, request, sizeof(request) - 1, 0);
	const char *key;
	struct err e;

	MUST(n > 0);
	request[n] = '\0';
	key = strstr(request, field);
	MUST(key && (key += sizeof(field) - 1));
	snprintf(text, sizeof(text), "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
	sha1(str_of(text), hash);
	MUST(base64_encode(&accept, (struct str){ (const char *)hash, sizeof(hash) }, &e) == 0);
	dprintf(fd,
		"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: %s\r\n"
		"Sec-WebSocket-Protocol: p\r\n\r\n",
		accept.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct ws_client_options o = { .unix_socket = host.at.sun_path,
					     .path = "/",
					     .protocol = "p",
					     .message_max = MESSAGE_MAX };
	struct client c = { .holds = n > 0 && (data[0] & HOLDS) };
	struct err e;
	int peer;

	if (n == 0 || n > SAID_MAX)
		return 0;
	listen_once();
	uv_idle_init(&host.loop, &c.again);
	c.again.data = &c;
	c.ws = ws_client_open(&host.loop, &o, &events, &c, &e);
	MUST(c.ws);
	peer = accept4(host.listener, NULL, NULL, SOCK_CLOEXEC);
	MUST(peer >= 0);
	if (!(data[0] & RAW))
		say_upgrade(peer);
	MUST(send(peer, data + 1, n - 1, MSG_NOSIGNAL) == (ssize_t)n - 1);
	shutdown(peer, SHUT_WR);
	MUST(uv_run(&host.loop, UV_RUN_DEFAULT) == 0 && !c.ws);
	close(peer);
	return 0;
}
