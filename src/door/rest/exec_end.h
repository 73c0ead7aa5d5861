#pragma once
/* What streams and sockets of execs share: how /v1 tells an end, and what a client's binary
 * message is. */
#include "door/http/common.h"
#include "op/exec.h"

struct exit_view {
	int32_t exit_code;
	double exec_time_ms;
	struct str error, code, dimension;
	bool fails;
	enum err_failure failure;
};
extern const struct field_table exit_view_table;
/* Borrows the event. */
struct exit_view exit_view(const struct exec_event *end);

/* A result that is a failure where the timeout ended it: api_route.show. */
const void *exec_show(struct call *c, const void *result, const struct field_table **t,
		      struct err *e);

/* Output as a binary message, in the buffer. */
struct str socket_output(enum exec_stream stream, struct str bytes, struct buf *to);
/* Members of a text message to a running exec. */
extern const struct field_table socket_word_table;
/* api_route.hear: such a text, or a binary message with standard input. */
int socket_hear(struct call *c, struct arena *scratch, bool is_text, struct str message,
		struct err *e) MUST_USE;
