"""Queries of a service that uses SQLAlchemy: by line and route."""

import asyncio
import os
import threading
import unittest
from collections import Counter

from test.support import os_helper, threading_helper

from profile_sampling import profile, request

from ..support.packages import contained, optional
from ..support.sessions import SessionTest

sqlalchemy = optional('sqlalchemy')
aiosqlite = optional('aiosqlite')
ORDERS = 120


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
        self.order = Order
        folder = self.enterContext(os_helper.temp_dir())
        self.path = os.path.join(folder, 'shop.db')
        self.engine = create_engine(f'sqlite:///{self.path}')
        self.addCleanup(self.engine.dispose)
        Base.metadata.create_all(self.engine)
        with orm.Session(self.engine) as session:
            session.add_all([Order(items=[Item()]) for _ in range(ORDERS)])
            session.commit()
        self.lazy_orders()

    def lazy_orders(self):
        from sqlalchemy import orm, select
        with orm.Session(self.engine) as session:
            for order in session.scalars(select(self.order)):
                order.items             # a query each

    def joined_orders(self):
        from sqlalchemy import orm, select
        with orm.Session(self.engine) as session:
            for order in session.scalars(select(self.order).options(
                    orm.joinedload(self.order.items))).unique():
                order.items

    def counted(self, function):
        """{(function, line in it, route): calls}"""
        with profile(calls='queries') as block:
            function()
        return Counter({
            (row.caller.qualname.rpartition('.')[2],
             row.line - row.caller.first_line, row.route): row.calls
            for row in block.profile.queries if row.caller is not None})

    def handle(self, route, times=1):
        for _ in range(times):
            with request(route=route):
                (self.lazy_orders if 'lazy' in route
                 else self.joined_orders)()

    def test_by_route(self):
        def serve():
            self.handle('GET /lazy', 5)
            self.handle('GET /joined', 3)
        self.assertEqual(self.counted(serve), {
            ('lazy_orders', 3, 'GET /lazy'): 5,
            ('lazy_orders', 4, 'GET /lazy'): 5 * ORDERS,
            ('joined_orders', 3, 'GET /joined'): 3})

    def test_in_threads(self):
        def serve():
            threads = [threading.Thread(target=self.handle,
                                        args=('GET /lazy', 2))
                       for _ in range(4)]
            with threading_helper.start_threads(threads):
                pass
        self.assertEqual(self.counted(serve), {
            ('lazy_orders', 3, 'GET /lazy'): 8,
            ('lazy_orders', 4, 'GET /lazy'): 8 * ORDERS})

    def test_in_tasks(self):
        async def handle(route):
            with request(route=route):
                await asyncio.to_thread(
                    self.lazy_orders if 'lazy' in route
                    else self.joined_orders)

        async def serve():
            await asyncio.gather(*[handle(route) for route in (
                'GET /lazy', 'GET /joined', 'GET /lazy')])
        self.assertEqual(self.counted(lambda: asyncio.run(serve())), {
            ('lazy_orders', 3, 'GET /lazy'): 2,
            ('lazy_orders', 4, 'GET /lazy'): 2 * ORDERS,
            ('joined_orders', 3, 'GET /joined'): 1})

    @unittest.skipIf(aiosqlite is None, 'needs the PyPI package aiosqlite')
    def test_with_a_driver_of_asyncio(self):
        from sqlalchemy import select
        from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
        engine = create_async_engine(f'sqlite+aiosqlite:///{self.path}')

        async def numbers():
            with request(route='GET /numbers'):
                async with AsyncSession(engine) as session:
                    for number in range(ORDERS):
                        await session.scalars(select(self.order.number))

        async def serve():
            await asyncio.gather(numbers(), numbers())
            await engine.dispose()
        self.assertEqual(self.counted(lambda: asyncio.run(serve())), {
            ('numbers', 4, 'GET /numbers'): 2 * ORDERS})


if __name__ == '__main__':
    unittest.main()
