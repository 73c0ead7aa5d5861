#include "net/wire/wire.h"

const char *nw_reason_name(uint32_t reason)
{
	static const char *const names[] = {
#define X(code, name, text) [NW_REASON_##code] = name,
		NW_REASONS(X)
#undef X
	};

	return reason < NW_REASONS_N ? names[reason] : "unknown";
}

const char *nw_reason_text(uint32_t reason)
{
	static const char *const texts[] = {
#define X(code, name, text) [NW_REASON_##code] = text,
		NW_REASONS(X)
#undef X
	};

	return reason < NW_REASONS_N ? texts[reason] : "unknown";
}
