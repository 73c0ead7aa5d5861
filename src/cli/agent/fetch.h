#pragma once
/* Packages of agents' programs, as `holt agent add` and `update` fetch them. */
#include "cli/agent/agent.h"
#include "modules/agent_program.h"

struct agent_fetch {
	const struct config *config;
	struct str package, program;
	bool scripts; /* run install scripts */
	const char *prefix; /* of its image: AGENT_IMAGES or AGENT_IMAGES_NEW */
};
/* Fetches one, which takes seconds to minutes, and tells the registry before. */
int agent_fetch(const struct agent_fetch *f, struct err *e) MUST_USE;

/* The record of an image that agent_fetch() made; NULL without *e: there is no such image.
 * package_unref() it. */
struct package *agent_fetched(const char *prefix, struct str package, struct str program,
			      struct err *e) MUST_USE;
/* Whether its install scripts ran when it was fetched. */
bool agent_fetch_ran_scripts(const struct package *p);
/* Name, version, size, packages, install scripts. */
void agent_fetch_tell(const struct package *p);
