"""Asking models, whoever runs them."""

from recollect.models.chat.contract import Answer, Chat, Reply, Said
from recollect.models.chat.routed import RoutedChat, open_chat

__all__ = ["Answer", "Chat", "Reply", "RoutedChat", "Said", "open_chat"]
