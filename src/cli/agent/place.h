#pragma once
/*
 * The sandbox in which `holt agent run` has an agent work on a folder: its name, and what it is
 * made of. One that is there is used again.
 */
#include "cli/agent/agent.h"
#include "cli/link/link.h"
#include "config/toolchains.h"
#include "modules/agent_program.h"
#include "modules/agent_state.h"

struct agent_place {
	/* What is wanted; borrowed. */
	struct str agent; /* as it was said: of an entry, or of a preset */
	const struct config_agent *entry; /* NULL: there is none */
	const struct agent_preset *preset;
	const struct agent_program *program;
	const char *folder; /* absolute, without links; at the same path inside; NULL: none */
	const char *state; /* folder of the host with its home's folders */
	struct toolchains toolchains; /* of this home, for work on the folder */
	const struct option_list *volumes, *allow;
	const char *key; /* a secret and its variable; NULL: none */
	bool login; /* the key is a log-in; its preset has tokens */
	bool begin; /* and that may begin here, where its hosts are reached, too */
	uint64_t memory;
	uint32_t cpu_milli;
	/* The sandbox. */
	char id[SANDBOX_ID_MAX + 1];
	bool made; /* now */
	bool before_login; /* it was made before there was this log-in, and has none */
};

/* Its agent, entry and preset, of an entry's name or a preset's. */
int agent_place_find(struct agent_place *p, const struct agent_file *f, const char *name,
		     struct err *e) MUST_USE;

/* Removes it. */
int agent_place_remove(const struct agent_place *p, struct hub_link *l, struct err *e) MUST_USE;

/* Sets p->id: name, or one made of agent and folder; fresh: one that nothing has. */
int agent_place_name(struct agent_place *p, struct hub_link *l, const char *name, bool fresh,
		     struct err *e) MUST_USE;

/* Makes the sandbox, or starts it again, and has it reach p->allow. ERR_CONFLICT: a sandbox of that
 * name is none of this agent and folder. */
int agent_place_open(struct agent_place *p, struct hub_link *l, struct err *e) MUST_USE;

/* Writes the member env: of the preset and the entry, of git here, then what `more` says. tty: it
 * has our terminal. */
int agent_place_env(const struct agent_place *p, struct json_writer *w,
		    const struct env_options *more, bool tty, struct err *e) MUST_USE;
