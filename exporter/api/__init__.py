"""The JSON documents of `/api/v1`, from memory."""
