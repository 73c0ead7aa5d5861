#pragma once
/* Between the files of the page. */
#include "base/secret.h"
#include "base/sha256.h"
#include "door/page/page.h"

enum {
	OWNER_SIZE = 80,
	LINKS_MAX = 16,
	LOGINS_MAX = 64, /* at once; of those of whoever has most, one gives way */
};

/* One browser's. Calls point to its principal, so it stays when it has ended. */
struct login {
	struct login *next;
	struct principal who;
	const struct principal *by; /* whose link it was */
	char cookie[SHA256_HEX], key[SHA256_HEX]; /* of the secrets, which nothing keeps */
	bool told; /* that it has ended, on_ended was called */
	/* It began over TLS. Else whoever takes the port while no hub has it learns both secrets
	 * from the page, so it ends with the hub. */
	bool kept;
	int64_t began_ms, used_ms;
	char id[48], name[OWNER_SIZE], owner[OWNER_SIZE];
};

struct link {
	struct secret *code; /* NULL: none */
	const struct principal *by;
	int64_t until_ms;
};

struct page {
	struct page_options o;
	uv_timer_t timer;
	struct login *logins; /* the newest first */
	struct link links[LINKS_MAX];
	int64_t saved_ms; /* when the file was written; 0: something in it has changed */
	void (*on_closed)(void *arg);
	void *on_closed_arg;
};

/* A file of the page, compressed with gzip. */
struct page_file {
	const char *path, *type;
	const char *bytes;
	size_t n;
};
/* Written by ui/build.mjs. */
extern const struct page_file page_files[];
extern const size_t page_files_n;
/* Of every view, where NONCE stands for the nonce of its answer; not compressed. NULL: this program
 * was built without the page. */
extern const char *const page_html;
#define NONCE "{{nonce}}"

/* files.c */
void page_show(void *owner, struct http_request *q);
void page_send_file(void *owner, struct http_request *q);

/* kept.c: log-ins that the next hub has again. */
void kept_read(struct page *p);
int kept_write(struct page *p, struct err *e);

/* login.c */
void login_start(void *owner, struct http_request *q);
void login_show(void *owner, struct http_request *q);
void login_leave(void *owner, struct http_request *q);
void login_list(void *owner, struct http_request *q);
void login_end_one(void *owner, struct http_request *q);
void login_link(void *owner, struct http_request *q);

/* A new one, without its secrets. */
struct login *login_new(struct page *p, const struct principal *by, struct err *e) MUST_USE;

/* Ends those that are over, and tells of all that have ended. */
void login_sweep(struct page *p);
void login_free_all(struct page *p);
