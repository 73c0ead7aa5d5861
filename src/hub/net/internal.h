#pragma once
/*
 * Shared by the files of hub/net:
 *
 * 	proxy.c	the proxy's process and the socket to it
 * 	secrets.c	the message with a sandbox's secrets
 * 	question.c	requests that wait for a person
 * 	net.c	what each sandbox is granted, and the sockets for that
 */
#include "base/buf.h"
#include "base/secret.h"
#include "hub/net/net.h"

/* A message that has no room in the socket yet. */
struct outgoing {
	struct outgoing *next;
	size_t n_fds, n;
	int fds[NW_SOCKETS_MAX]; /* owned */
	_Alignas(8) char bytes[];
};

struct nets {
	uv_loop_t *loop;
	struct box *box;
	struct nets_options o;
	struct net *first;
	struct question *questions;
	uint64_t last_key, last_question;
	uint32_t last_seq;

	uv_process_t *process; /* NULL: there is none */
	uv_poll_t *poll;
	int socket; /* -1: none */
	struct outgoing *unsent, **end;
	uv_timer_t *timer; /* until the next try to start one */
	unsigned failures; /* in a row, each soon after the start */
	uint64_t started_ms;
	bool closing;
	void (*on_closed)(void *arg);
	void *on_closed_arg;
};

/* ---- proxy.c ------------------------------------------------------------------------------- */

/* Starts a proxy unless there is one, or one will be started soon. */
int proxy_need(struct nets *all, struct err *e) MUST_USE;
bool proxy_runs(const struct nets *all);
/* msg is copied, fds are taken over in any case. Nothing is sent without a proxy. */
void proxy_send(struct nets *all, const void *msg, size_t n, const int *fds, size_t n_fds);

/* ---- secrets.c ----------------------------------------------------------------------------- */

/* *ret: owned; NULL where there are none. ERR_LIMIT: they are too large together. */
int secrets_pack(const struct net_secrets *s, struct secret **ret, struct err *e) MUST_USE;
/* packed: as it came from there. The proxy answers. */
void secrets_send(struct nets *all, uint64_t key, uint32_t seq, const struct secret *packed,
		  bool renews);
/* Whether there is a log-in of this name in it, and whether that may begin. */
bool secrets_have_login(const struct secret *packed, const char *name, bool *ret_begins);
/* *ret: the same with other tokens of the log-in. */
int secrets_renew(const struct secret *packed, struct str name, const struct net_secret *tokens,
		  size_t n, struct str access, struct secret **ret, struct err *e) MUST_USE;
/* The hub's answer about tokens: with a body, or why they were not kept. */
void secrets_answer(struct nets *all, const struct nw_tokens *to, struct str body,
		    const struct err *err);

/* ---- question.c ---------------------------------------------------------------------------- */

void question_hear(struct nets *all, void *of, const struct nw_ask *m);
void question_leave(struct nets *all, const struct nw_leave *m);
/* All of a sandbox that ends, or, with key 0, all of a proxy that has ended. */
void questions_drop(struct nets *all, uint64_t key);

/* ---- net.c --------------------------------------------------------------------------------- */

/* A new proxy is there, and knows of nothing. */
void nets_tell_all(struct nets *all);
/* No proxy can be started: who waits is told. */
void nets_fail_all(struct nets *all, const struct err *err);
/* Checked for its length. */
void nets_hear(struct nets *all, const struct nw_head *m);
