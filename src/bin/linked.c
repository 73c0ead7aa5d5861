/* Nothing: what this is linked with is all that is asked of it. */
