/*
 * Servers that know nothing of MCP, which show what a machine and a library leave to the others:
 * bare KIND PORT on 127.0.0.1. KIND: epoll (takes what it reads for one request), microhttpd (the
 * library that Holt serves HTTP by, with its flags and memory of a connection). Both answer
 * everything with one text.
 *
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 128, EVENTS = 64, POOL = 12 << 10 };

static char body[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\","
		     "\"text\":\"hello\"}]}}";

static void die(const char *what)
{
	fprintf(stderr, "bare: %s\n", what);
	exit(1);
}

static int listen_at(const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, BACKLOG) < 0)
		die("can't listen");
	return fd;
}

/* ---- epoll --------------------------------------------------------------------------------- */

static void answer(int fd)
{
	static char reply[512], in[16 << 10];
	static int n;

	if (n == 0)
		n = snprintf(reply, sizeof(reply),
			     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
			     "Content-Length: %zu\r\n\r\n%s",
			     sizeof(body) - 1, body);
	if (read(fd, in, sizeof(in)) <= 0 || write(fd, reply, (size_t)n) != n)
		close(fd);
}

static void serve_epoll(int listener)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = listener }, ready[EVENTS];
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &e) < 0)
		die("no epoll");
	for (;;) {
		int n = epoll_wait(epoll, ready, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			if (ready[i].data.fd != listener) {
				answer(ready[i].data.fd);
				continue;
			}
			e.data.fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
			if (e.data.fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, e.data.fd, &e) < 0)
				close(e.data.fd);
		}
	}
}

/* ---- microhttpd ---------------------------------------------------------------------------- */

static enum MHD_Result handle(void *cls, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_n, void **context)
{
	struct MHD_Response *r;
	enum MHD_Result queued;

	if (!*context || *upload_n > 0) {
		*context = body;
		*upload_n = 0;
		return MHD_YES;
	}
	r = MHD_create_response_from_buffer(sizeof(body) - 1, body, MHD_RESPMEM_PERSISTENT);
	if (!r || MHD_add_response_header(r, "Content-Type", "application/json") != MHD_YES)
		die("no memory");
	queued = MHD_queue_response(c, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return queued;
}

static void serve_microhttpd(int listener)
{
	struct MHD_Daemon *d =
		MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE, 0,
				 NULL, NULL, handle, NULL, MHD_OPTION_LISTEN_SOCKET, listener,
				 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL, MHD_OPTION_END);

	if (!d)
		die("no daemon");
	while (MHD_run_wait(d, -1) == MHD_YES) {
	}
}

int main(int argc, char **argv)
{
	int listener;

	if (argc != 3)
		die("KIND PORT");
	signal(SIGPIPE, SIG_IGN);
	listener = listen_at(argv[2]);
	fprintf(stderr, "ready\n");
	if (strcmp(argv[1], "epoll") == 0)
		serve_epoll(listener);
	else
		serve_microhttpd(listener);
	return 0;
}
