"""Reading a broker through its management API: requests in, kernel dataclasses out. It judges nothing."""
