"""Lists, read page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Generic, TypeVar

from .._policy import Call
from .caller import AsyncCaller

Item = TypeVar("Item")
Page = TypeVar("Page")


class AsyncPages(Generic[Item, Page]):
    """A list. Iterating over it yields its items, and requests the next page when the last item of a page is used up."""

    def __init__(self, caller: AsyncCaller, call: Call, items: str) -> None:
        self._caller, self._call, self._items = caller, call, items

    async def first(self) -> Page:
        """Returns the first page, as the API has it."""
        page: Page = await self._caller.json(self._call)
        return page

    async def pages(self) -> AsyncIterator[Page]:
        """Yields every page, as the API has it."""
        call = self._call
        while True:
            page: Any = await self._caller.json(call)
            yield page
            if page["nextCursor"] is None:
                return
            call = replace(call, query={**call.query, "cursor": page["nextCursor"]})

    async def __aiter__(self) -> AsyncIterator[Item]:
        async for page in self.pages():
            for item in page[self._items]:  # type: ignore[index]
                yield item
