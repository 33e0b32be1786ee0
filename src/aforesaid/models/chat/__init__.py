"""Calls to chat models of any provider."""

from aforesaid.models.chat.completion import Answer, Chat, Reply, Said
from aforesaid.models.chat.routed_chat import RoutedChat, open_chat

__all__ = ["Answer", "Chat", "Reply", "RoutedChat", "Said", "open_chat"]
