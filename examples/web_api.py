"""A web API for a chat app: one memory for all requests, one chat for each conversation.

Run: pip install '.[models,server]', then OPENAI_API_KEY=… python examples/web_api.py
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from openai import AsyncOpenAI
from pydantic import BaseModel

import aforesaid


class Question(BaseModel):
    user: str
    chat: str
    text: str


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncOpenAI() as client, aforesaid.connect("web.db") as memory:
        app.state.memory, app.state.client = memory, client
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/ask")
async def ask(question: Question, request: Request) -> dict[str, str]:
    memory: aforesaid.Memory = request.app.state.memory
    client: AsyncOpenAI = request.app.state.client
    try:
        chat = memory.user(question.user).chat(question.chat)
        context = await chat.context(question.text, budget=4000, system="You are helpful.")
    except aforesaid.errors.InvalidInput as error:
        raise HTTPException(422, str(error)) from error
    reply = await client.chat.completions.create(
        model=os.environ.get("MODEL", "gpt-4o-mini"), messages=context.messages
    )
    answer = reply.choices[0].message.content or ""
    await chat.add("user", question.text)
    await chat.add("assistant", answer)
    return {"answer": answer}


@app.get("/users/{user}/memories")
async def memories(user: str, request: Request) -> list[str]:
    memory: aforesaid.Memory = request.app.state.memory
    return [each.text for each in await memory.user(user).memories()]


@app.get("/users/{user}/search")
async def search(user: str, q: str, request: Request) -> list[str]:
    memory: aforesaid.Memory = request.app.state.memory
    return [hit.text for hit in await memory.user(user).search(q)]


@app.delete("/users/{user}")
async def purge(user: str, request: Request) -> None:
    memory: aforesaid.Memory = request.app.state.memory
    await memory.purge(user)


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", "8000")))
