"""Writing arguments and outputs down as JSON, against the handler's own signature.

Everything goes through msgspec: dataclasses, msgspec structs, pydantic models, datetime, UUID,
Decimal, enums, bytes and the unions that msgspec supports. Bounds are the store's business.
"""
