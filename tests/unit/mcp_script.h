#pragma once
/*
 * A server that the test speaks for, word by word, and the client that it speaks to: what the
 * client sends is gathered, and what its owner hears is counted.
 *
 */
#include "mcp/client/client.h"
#include "mcp_peer.h"

enum { SENT = 2048, TEXT_MAX = 1 << 16 };

#define MODERN "2026-07-28"
#define DONE "{\"content\":[]}"
/* A question of a legacy server, for say() with an id. */
#define ROOTS "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"roots/list\"}"
/* What the server that script_begin() plays is able to do. */
#define ABLE                                                                                       \
	"{\"tools\":{},\"logging\":{},\"resources\":{\"subscribe\":true},"                         \
	"\"tasks\":{\"cancel\":{},"                                                                \
	"\"requests\":{\"tools\":{\"call\":{}}}}}"

extern struct sent {
	struct json_doc *doc;
	enum mcp_out_kind kind;
	struct mcp_pending *p;
	char name[128];
	unsigned params_n;
	bool is_initialize, opens_stream;
	char version[32];
} sent[SENT]; /* in order */
extern unsigned sent_n;

extern struct mcp_client *client;
extern struct mcp_client_options options; /* of the next one */
extern const struct mcp_client_handler handler; /* theirs */
extern uint64_t now; /* ms */

/* What the owner and the transport heard. */
extern unsigned let_gos, unfits, readies, overs, asks, withdrawals, urls, logs, changes, updates;
extern struct err over_err;
extern struct mcp_question *question; /* the last, while it is there */
extern int unfit_code;
extern enum err_code unfit_err;
extern const char *restart_with; /* in that revision, when it is unfit; NULL: it is over */

/* How the last request ended. */
extern struct got {
	unsigned done, progress;
	int code;
	struct err e;
	char text[256];
	size_t listed, dropped;
} got;

/* Transports: of one stream for all, of one for each request. */
extern const struct mcp_client_transport lines, streams;

/* A client whose first message is out. */
void script_open(const char *version, const struct mcp_client_transport *t);
/* One whose server has answered it. */
void script_begin(const char *version, const struct mcp_client_transport *t);
void script_end(void);

/* True where it answered a request. */
bool say(const char *fmt, ...) PRINTF_LIKE(1, 2);
bool say_on(struct mcp_pending *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* To the last request of that method. */
bool say_result(const char *method, const char *result);
bool say_error(const char *method, int code, const char *data); /* data: JSON, may be NULL */
void pass(unsigned ms);

/* A request or notification that was sent: 0 is the last of its method. NULL for none. */
const struct json_val *nth_sent(const char *method, unsigned n);
const struct json_val *last_sent(const char *method);
unsigned count_sent(const char *method);
int id_of(const char *method); /* of the last */
struct mcp_pending *pending_of(const char *method);
const struct json_val *last_answer(void); /* of the client to the server */
void forget_sent(void);

/* The owner's; `got` tells how it ends. */
struct mcp_pending *call(void); /* of a tool t */
struct mcp_pending *call_for(unsigned ttl_ms); /* as a task */
struct mcp_pending *ask(const char *method, const char *params);
struct mcp_pending *ask_list(const char *what);
void on_done(void *owner, const struct mcp_answer *a);
void failed_with(enum err_code code); /* the last has ended with that; ERR_NONE: without an error */
struct mcp_client_counts counts(void);
