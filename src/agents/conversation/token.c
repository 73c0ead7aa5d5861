/* The tokens of conversations: only their hashes are kept, which is enough for 256 random bits. */
#include "agents/conversation/internal.h"

static const char prefix[] = "holt_conv_";
enum { TOKEN_LENGTH = sizeof(prefix) - 1 + 64, TOKEN_KIND = 't' };

struct secret *conversation_token(struct conversation *t, struct err *e)
{
	struct secret *token = secret_random(prefix, e);
	struct str text;

	if (!token)
		return NULL;
	conversation_end_token(t);
	text = secret_expose(token, "hashed, to know it again");
	blake2b(TOKEN_KIND, text.p, text.n, t->token);
	t->has_token = true;
	return token;
}

struct conversation *conversations_by_token(struct conversations *all, struct str token)
{
	uint8_t hash[BLAKE2B_BYTES];

	if (!str_starts(token, prefix) || token.n != TOKEN_LENGTH)
		return NULL;
	blake2b(TOKEN_KIND, token.p, token.n, hash);
	for (size_t i = 0; i < all->n; i++) {
		if (all->p[i]->has_token && memcmp(all->p[i]->token, hash, sizeof(hash)) == 0)
			return all->p[i];
	}
	return NULL;
}

void **conversation_token_state(struct conversation *t)
{
	return &t->token_state;
}

void conversation_end_token(struct conversation *t)
{
	if (!t->has_token)
		return;
	t->has_token = false;
	if (t->all->o.on_token_end)
		t->all->o.on_token_end(t->all->o.owner, t);
	t->token_state = NULL;
}
