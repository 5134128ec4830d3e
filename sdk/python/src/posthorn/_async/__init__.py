"""The client for asyncio, from which that for blocking code is generated."""
