#pragma once
/*
 * Where a program of the operator's file runs: a sandbox of the engine that the hub's lists do not
 * have, so that no operation reaches it and no agent sees its environment. The warden ends it as
 * soon as no hub is connected, by a time to live that is always over.
 *
 *	texts_start() -> on_texts -> program_sandbox_start() -> on_made -> program_sandbox_runner …
 *	program_sandbox_end() -> on_gone
 */
#include "box/host/box.h"
#include "config/config.h"
#include "hub/sandbox/volumes.h"
#include "mcp/connect/connect.h"
#include "net/wire/grant.h"

struct bound;
struct hub;
struct net;
struct nw_flow;
struct secrets;
struct secrets_read;

/* Parts of the hub that start programs of the file, as modules/upstream.h says. */
struct program_sandbox_of {
	uv_loop_t *loop;
	struct hub *hub;
	struct secrets *secrets;
	int (*rules)(const struct config_file *f, struct str text, struct net_grant *to,
		     struct err *e);
	int (*gave_secret)(void *data, struct str name, struct str value, struct err *e);
	void *data;
};

/* ---- texts.c: its texts, with values in place of variables --------------------------------- */

/* A secret with hosts is not among the values. What runs in a sandbox gets a placeholder in its
 * arguments and variables; a URL at one of the hosts gets the value in headers, since the hub sends
 * them. Everywhere else it is refused. */

struct texts {
	const struct program_sandbox_of *of; /* the owner's, as all up to on_texts */
	struct config *config;
	const struct config_server *server;
	/* Once, maybe from inside texts_start(). */
	void (*on_texts)(void *owner, const struct err *e);
	void *owner;
	/* Filled in. */
	struct config_target target;
	bool has_target;
	struct bound *bound; /* secrets with hosts, whose placeholders are in it; NULL: none */
	struct secrets_read *reading; /* private */
};
void texts_start(struct texts *t);
void texts_cancel(struct texts *t); /* on_texts does not come any more */
void texts_fini(struct texts *t); /* the same, and the values are wiped */

/* A variable of the hub's environment; files name single ones. */
struct str texts_variable(struct str name);

/* ---- program_sandbox.c ---------------------------------------------------------------------- */

struct program_sandbox {
	struct texts *texts; /* the owner's, as all up to owner; on_texts has come */
	struct str template; /* instead of the file's; STR_NONE: that */
	const struct volume *more; /* folders beside those of the file */
	size_t n_more;
	const struct net_rule *service; /* a service of the host beside them; NULL: none */
	/* Once; also after program_sandbox_end(), and then it is of no use. */
	void (*on_made)(void *owner, const struct err *e);
	void (*on_gone)(void *owner);
	void (*on_stderr)(void *owner, struct str bytes);
	/* The program asked for what it is not granted (DENIED), or could not be reached (FAILED),
	 * by a name (port 0: not known) or an address. NULL: nobody hears of it. */
	void (*on_refused)(void *owner, const struct nw_flow *f);
	void *owner;
	/* Private, but for `sandbox`: NULL until it is made. */
	struct sandbox *sandbox;
	struct net *net;
	struct net_grant grant; /* until it is made */
	bool making; /* on_made is still to come */
};
/* Makes the sandbox, with what it is granted. */
void program_sandbox_start(struct program_sandbox *p);
/* It was made. Removes it; on_gone follows, now or later. */
void program_sandbox_end(struct program_sandbox *p);
/* Runs the target's program there; its owner is the place. */
extern const struct mcp_runner program_sandbox_runner;
