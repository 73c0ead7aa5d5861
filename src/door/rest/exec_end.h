#pragma once
/* What streams and sockets of execs share: how /v1 tells an end, and what a client's binary message is. */
#include "door/http/common.h"
#include "op/exec.h"

struct exit_view {
	int32_t exit_code;
	double exec_time_ms;
	struct str error, code, dimension;
};
extern const struct field_table exit_view_table;
/* Borrows the event. */
struct exit_view exit_view(const struct exec_event *end);

/* A result that is a failure where the timeout ended it: api_route.show. */
const void *exec_show(struct call *c, const void *result, const struct field_table **t,
		      struct err *e);

/* The first byte of a binary message. */
enum socket_channel { SOCKET_STDIN, SOCKET_STDOUT, SOCKET_STDERR };
/* What such a message has for standard input. */
int socket_input(struct str message, struct str *ret, struct err *e) MUST_USE;
/* Output behind its channel, in the buffer. */
struct str socket_output(enum exec_stream stream, struct str bytes, struct buf *to);

/* What a text can say to an exec that runs. */
struct socket_word {
	bool has_resize, has_signal, has_close;
	struct socket_size {
		uint32_t cols, rows;
	} resize;
	int32_t signal;
	bool stdin_close;
};
extern const struct field_table socket_size_table, socket_word_table;
/* The one thing that it says. */
int socket_word(const struct socket_word *w, struct exec_word *ret, struct err *e) MUST_USE;
