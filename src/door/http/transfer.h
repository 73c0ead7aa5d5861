#pragma once
/*
 * A tree of files from a client into a sandbox, as a tar archive that nobody ever holds whole: a
 * sandbox that takes slowly is waited for, and a client that goes away ends it. Secrets come back
 * for marks in it (op/files.h).
 */
#include "door/http/body_pipe.h"

struct transfer_upload { /* part of something whose memory is the call's */
	struct call *call;
	bool literal; /* of the request, set before it is opened */
	struct sandbox *sb; /* into which it goes; NULL: it goes elsewhere */
	struct str path; /* the directory there */
	struct body_pipe pipe; /* to the sandbox */
	struct files_return *marks; /* NULL once the sandbox takes no more */
	struct file_transfer *transfer; /* NULL once it has ended */
	void (*on_done)(struct transfer_upload *u, const struct err *e);
	bool held; /* so is the client, until marks no longer waits */
	bool whole; /* nothing more is put */
};

/* Unpacks what is put into a directory. on_done is called later, once, with the result; it may come
 * before the end of the archive. */
int transfer_upload_start(struct transfer_upload *u, struct call *c, struct sandbox *sb,
			  struct str path,
			  void (*on_done)(struct transfer_upload *u, const struct err *e),
			  struct err *e) MUST_USE;

/* An archive that goes elsewhere. Returns its read end, owned by the caller; -1 with *e. read: that
 * of files_return_spec, whose owner is u. on_done is called if what is put fails. Whoever reads
 * tells the caller of the end, who then calls transfer_upload_stop(). */
int transfer_upload_open(struct transfer_upload *u, struct call *c,
			 void (*read)(void *u, const char *name, uint64_t offset, size_t max,
				      file_read_cb on_done, void *arg),
			 void (*on_done)(struct transfer_upload *u, const struct err *e),
			 struct err *e) MUST_USE;

/* Puts the body of a route that streams, unchanged. */
void transfer_upload_body(struct transfer_upload *u);

/* Or the owner puts what it makes of the body. Before each piece it calls transfer_upload_holds().
 * If that is true, it takes nothing of the piece, and exchange_body_resume() is called when there
 * is room. */
bool transfer_upload_holds(struct transfer_upload *u);
int transfer_upload_put(struct transfer_upload *u, struct str bytes, struct err *e) MUST_USE;
void transfer_upload_end(struct transfer_upload *u);

/* Ends it, where it has not ended: on_done is not called. */
void transfer_upload_stop(struct transfer_upload *u);
