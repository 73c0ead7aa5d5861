#pragma once
/*
 * Agents of conversations: programs of the operator's file (agents) that speak ACP, one process for
 * each conversation, in a sandbox of its own with the workspace mounted, unless the file says
 * "sandbox": false. They drive conversations (agents/conversation/conversation.h).
 *
 *	starting ── idle ⇄ turn ── cancelling		any ── ending
 *
 * A process starts with the first prompt, stays between turns, and ends with the conversation, with
 * its hub, or when it does not end a cancelled turn in time. The next prompt starts another, which
 * goes on with the agent's session where it can.
 *
 * What an agent asks for its person becomes a question; files and terminals are those of its
 * sandbox. It gets the hub's MCP address and the conversation's token. All that it says is
 * untrusted.
 */
#include "agents/conversation/conversation.h"
#include "ask/question.h"
#include "config/config.h"
#include "modules/program_sandbox.h"

#define AGENT_HUB "hub.holt" /* where a sandbox has the hub */

struct agents;

struct agents_options {
	const struct program_sandbox_of
		*place; /* borrowed until agents_close() has ended, as all here */
	struct config *config; /* a reference is taken */
	struct conversations *conversations;
	struct questions *questions;
	/* Whether the conversation may have its agent, as the file is now. */
	int (*check)(void *owner, const struct conversation *t, struct err *e);
	/* The port of 127.0.0.1 where the hub takes the tokens of conversations. */
	int (*port)(void *owner, struct err *e);
	void *owner;
};
struct agents *agents_new(const struct agents_options *o, struct err *e) MUST_USE;
/* Another file holds. Agents that run go on as they are, but those end that are gone from it, or
 * that it no longer grants their conversation. */
void agents_configure(struct agents *all, struct config *c);
/* Ends all, then calls on_closed, later. NULL-safe: then at once. */
void agents_close(struct agents *all, void (*on_closed)(void *arg), void *arg);

/* Processes, also those that end. NULL-safe. */
unsigned agents_live(const struct agents *all);
