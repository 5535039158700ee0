"""Queries of a service that uses SQLAlchemy: by line and route."""

import asyncio
import os
import threading
import unittest

from test.support import os_helper, threading_helper

from profile_sampling import profile, request

from ..support.packages import contained, optional
from ..support.sessions import SessionTest

sqlalchemy = optional('sqlalchemy')
aiosqlite = optional('aiosqlite')
ORDERS = 120
# Code of the user's own, which the tests are not.
SHOP = """\
from sqlalchemy import orm, select
from sqlalchemy.ext.asyncio import AsyncSession

def lazy():
    with orm.Session(engine) as session:
        for order in session.scalars(select(Order)):
            order.items

def joined():
    with orm.Session(engine) as session:
        for order in session.scalars(select(Order).options(
                orm.joinedload(Order.items))).unique():
            order.items

async def numbers(engine, times):
    async with AsyncSession(engine) as session:
        for _ in range(times):
            await session.scalars(select(Order.number))
"""


def tearDownModule():
    asyncio.set_event_loop_policy(None)     # as it was


@unittest.skipIf(sqlalchemy is None, 'needs the PyPI package sqlalchemy')
class SQLAlchemyTest(SessionTest):

    def setUp(self):
        super().setUp()
        self.enterContext(contained())
        from sqlalchemy import ForeignKey, create_engine, orm

        class Base(orm.DeclarativeBase):
            pass

        class Order(Base):
            __tablename__ = 'orders'
            number: orm.Mapped[int] = orm.mapped_column(primary_key=True)
            items: orm.Mapped[list['Item']] = orm.relationship()

        class Item(Base):
            __tablename__ = 'items'
            number: orm.Mapped[int] = orm.mapped_column(primary_key=True)
            order: orm.Mapped[int] = orm.mapped_column(
                ForeignKey(Order.number))

        Base.registry.configure()
        folder = self.enterContext(os_helper.temp_dir())
        self.path = os.path.join(folder, 'shop.db')
        self.engine = create_engine(f'sqlite:///{self.path}')
        self.addCleanup(self.engine.dispose)
        Base.metadata.create_all(self.engine)
        with orm.Session(self.engine) as session:
            session.add_all([Order(items=[Item()]) for _ in range(ORDERS)])
            session.commit()
        self.shop = {'engine': self.engine, 'Order': Order}
        exec(compile(SHOP, '/srv/shop.py', 'exec'), self.shop)
        self.shop['lazy']()

    def counted(self, function):
        """{(function, line, route): calls}"""
        with profile(calls='queries') as block:
            function()
        return {(row.caller and row.caller.qualname, row.line, row.route):
                row.calls for row in block.profile.queries}

    def handle(self, route, times=1):
        for _ in range(times):
            with request(route=route):
                self.shop[route.removeprefix('GET /')]()

    def test_by_route(self):
        def serve():
            self.handle('GET /lazy', 5)
            self.handle('GET /joined', 3)
        self.assertEqual(self.counted(serve), {
            ('lazy', 6, 'GET /lazy'): 5,
            ('lazy', 7, 'GET /lazy'): 5 * ORDERS,
            ('joined', 11, 'GET /joined'): 3})

    def test_in_threads(self):
        def serve():
            threads = [threading.Thread(target=self.handle,
                                        args=('GET /lazy', 2))
                       for _ in range(4)]
            with threading_helper.start_threads(threads):
                pass
        self.assertEqual(self.counted(serve), {
            ('lazy', 6, 'GET /lazy'): 8,
            ('lazy', 7, 'GET /lazy'): 8 * ORDERS})

    def test_in_tasks(self):
        async def handle(route):
            with request(route=route):
                await asyncio.to_thread(
                    self.shop[route.removeprefix('GET /')])

        async def serve():
            await asyncio.gather(*[handle(route) for route in (
                'GET /lazy', 'GET /joined', 'GET /lazy')])
        self.assertEqual(self.counted(lambda: asyncio.run(serve())), {
            ('lazy', 6, 'GET /lazy'): 2,
            ('lazy', 7, 'GET /lazy'): 2 * ORDERS,
            ('joined', 11, 'GET /joined'): 1})

    @unittest.skipIf(aiosqlite is None, 'needs the PyPI package aiosqlite')
    def test_with_a_driver_of_asyncio(self):
        from sqlalchemy.ext.asyncio import create_async_engine
        engine = create_async_engine(f'sqlite+aiosqlite:///{self.path}')

        async def handle():
            with request(route='GET /numbers'):
                await self.shop['numbers'](engine, ORDERS)

        async def serve():
            await self.shop['numbers'](engine, 1)       # which connects
            await asyncio.gather(handle(), handle())
            await engine.dispose()
        found = self.counted(lambda: asyncio.run(serve()))
        # SQLAlchemy itself runs in a greenlet, which no line is below: of a
        # line are the driver's calls.
        self.assertEqual({key: calls for key, calls in found.items()
                          if key[0] is not None and key[2]},
                         {('numbers', 18, 'GET /numbers'): 2 * ORDERS})
