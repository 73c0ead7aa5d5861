/*
 * holt-call, by which shells of a sandbox call modules: it says its arguments to the hub
 * (modules/code/inlet.h), and prints the answer.
 *
 *	holt-call				names of the sandbox's modules
 *	holt-call MODULE			what its functions take and give
 *	holt-call MODULE TOOL [ARGUMENTS]	calls a tool; ARGUMENTS: a JSON object, - reads it
 *	holt-call holt result '{"result": ID, "offset": N}'	a part of a large result
 *
 * 0: it was done; 1: the tool has failed; 2: wrong arguments; 3: refused, or nobody answers.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/version.h"
#include "modules/code/inlet.h"

enum { DONE = 0, TOOL_FAILED = 1, WRONG = 2, REFUSED = 3 };

static char request[INLET_HEAD + INLET_REQUEST_MAX];
static size_t request_n = INLET_HEAD;

__attribute__((noreturn)) static void call_end(int status, const char *why)
{
	fprintf(stderr, "holt-call: %s\n", why);
	exit(status);
}

static void put(const char *p, size_t n)
{
	if (n > sizeof(request) - request_n)
		call_end(WRONG, "the arguments are too long");
	memcpy(request + request_n, p, n);
	request_n += n;
}

static void put_text(const char *text)
{
	put(text, strlen(text));
}

static void put_member(const char *name, const char *value)
{
	char escape[8];

	put_text(",\"");
	put_text(name);
	put_text("\":\"");
	for (; *value; value++) {
		if ((unsigned char)*value < 0x20 || *value == '"' || *value == '\\') {
			snprintf(escape, sizeof(escape), "\\u%04x", (unsigned char)*value);
			put_text(escape);
		} else {
			put(value, 1);
		}
	}
	put_text("\"");
}

static void put_input(void)
{
	char piece[4096];
	size_t n;

	while ((n = fread(piece, 1, sizeof(piece), stdin)) > 0)
		put(piece, n);
	if (ferror(stdin))
		call_end(WRONG, strerror(errno));
}

static void call_build(int argc, char **argv)
{
	put_text("{\"text\":true,\"do\":\"");
	put_text(argc < 2 ? "list\"" : argc < 3 ? "info\"" : "call\"");
	if (argc > 1)
		put_member("module", argv[1]);
	if (argc > 2)
		put_member("tool", argv[2]);
	if (argc > 3) {
		put_text(",\"arguments\":");
		if (strcmp(argv[3], "-") == 0)
			put_input();
		else
			put_text(argv[3]);
	}
	put_text("}");
	for (int i = 0; i < INLET_HEAD; i++)
		request[i] = (char)((request_n - INLET_HEAD) >> 8 * i & 0xff);
}

static int call_connect(void)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_port = htons(INLET_PORT),
					.sin_addr.s_addr = htonl(INLET_IP) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		call_end(REFUSED,
			 errno == ECONNREFUSED ? "this sandbox has no modules" : strerror(errno));
	return fd;
}

static void call_send(int fd)
{
	size_t done = 0;

	while (done < request_n) {
		ssize_t n = send(fd, request + done, request_n - done, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return; /* the answer may be there, and say why */
		done += n > 0 ? (size_t)n : 0;
	}
}

static void call_read(int fd, char *to, size_t n)
{
	while (n > 0) {
		ssize_t got = recv(fd, to, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			call_end(REFUSED, "Holt gave no answer");
		to += got;
		n -= (size_t)got;
	}
}

static int call_answer(int fd)
{
	unsigned char head[INLET_HEAD];
	size_t n;
	char *text;
	FILE *to;

	call_read(fd, (char *)head, sizeof(head));
	n = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
	text = n > 0 && n <= INLET_ANSWER_MAX ? malloc(n) : NULL;
	if (!text)
		call_end(REFUSED, "Holt gave an answer of no use");
	call_read(fd, text, n);
	if (text[0] == INLET_FAILED)
		fputs("holt-call: ", stderr);
	to = text[0] == INLET_RESULT ? stdout : stderr;
	fwrite(text + 1, 1, n - 1, to);
	if (n > 1 && text[n - 1] != '\n')
		putc('\n', to);
	if (fflush(to) != 0)
		call_end(REFUSED, strerror(errno));
	return text[0] == INLET_RESULT ? DONE : text[0] == INLET_ERROR ? TOOL_FAILED : REFUSED;
}

int main(int argc, char **argv)
{
	int fd;

	if (VERSION_TOLD("holt-call", argc, argv))
		return 0;
	if (argc > 4 || (argc > 1 && argv[1][0] == '-')) {
		fputs("usage: holt-call [MODULE [TOOL [ARGUMENTS]]]\n"
		      "ARGUMENTS are a JSON object; - reads them from the standard input.\n",
		      stderr);
		return WRONG;
	}
	call_build(argc, argv);
	fd = call_connect();
	call_send(fd);
	return call_answer(fd);
}
