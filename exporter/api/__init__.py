"""The JSON documents of `/api/v1`, made from memory."""
